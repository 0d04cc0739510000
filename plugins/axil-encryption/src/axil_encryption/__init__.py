"""``aes``: the cipher of encrypted journals; see ``Aes``."""

from axil_encryption.aes import Aes

__all__ = ["Aes"]
