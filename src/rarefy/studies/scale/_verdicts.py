def scale_verdicts(study, results, scale):
    return []
