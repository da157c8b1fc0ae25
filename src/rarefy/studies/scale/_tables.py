def scale_tables(study, results):
    return []
