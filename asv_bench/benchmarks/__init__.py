"""The asv suite of s2dq; its rules are in ../README.md."""
