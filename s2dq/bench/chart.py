"""A result as a bar chart."""


def require():
    import matplotlib  # noqa: F401
