"""Are images with high influence scores the hard ones?"""
