"""Settings: configs of components, secrets, grants of workflow files, and the policy of plugins.

The names are those of ``axil.plugin``; nothing is imported here, so that reading a policy does not
load what decodes configs.
"""
