"""What does the influence score find, and what finds it better?"""
