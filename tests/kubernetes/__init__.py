"""Rendered Kubernetes objects on this machine: each pod is a process in namespaces of its own."""
