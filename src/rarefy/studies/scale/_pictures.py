def scale_pictures(study, results):
    return []
