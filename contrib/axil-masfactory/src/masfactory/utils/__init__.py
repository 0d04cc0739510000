"""Small tools that MASFactory's modules share: hooks, selectors, path filters, names, embedders."""
