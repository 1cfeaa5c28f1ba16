"""The explorer: a page on which a fit is operated, its pooling done in the browser.

Read `kernels.py` first: the kernels of the registry as JavaScript. `bundle.py` joins them and the modules in `js/`.
"""
