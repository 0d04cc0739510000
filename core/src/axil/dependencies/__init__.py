"""The needs of workflows: components, their distributions, and the versions to which a run is
pinned.
"""

from axil_dependencies.needs import Dependencies, Dependency, dependencies_of
from axil_dependencies.versions import pins, recorded_files

__all__ = ["Dependencies", "Dependency", "dependencies_of", "pins", "recorded_files"]
