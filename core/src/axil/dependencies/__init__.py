"""The components that workflows name, and the versions to which a run is pinned."""
