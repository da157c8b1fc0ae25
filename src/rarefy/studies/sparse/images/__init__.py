"""The claim of S8 asked of any image set (``rarefy train``)."""
