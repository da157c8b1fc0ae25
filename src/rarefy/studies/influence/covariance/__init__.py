"""Does every class of images have noise of its own?"""
