"""Graphs as data, before anything is resolved; the rules of their structure; their digests."""
