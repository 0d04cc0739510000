"""Bodies on the machines of a Ray cluster, by the resources that they need."""

from axil_ray.executor import RayExecutor

__all__ = ["RayExecutor"]
