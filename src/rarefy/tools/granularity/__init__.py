"""How fine should the labels of pre-training be?"""
