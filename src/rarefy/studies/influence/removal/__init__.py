"""What is lost when atypical samples are left out?"""
