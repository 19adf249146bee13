"""A sweep as one file: plan, raw records, environment and hashes, from which anyone recomputes every figure.

A bundle is a ZIP archive with a manifest (:mod:`powerlab.bundles.manifest`). Making one reads a source; checking one
(:mod:`powerlab.bundles.verify`) takes the file and nothing else: no database, no server.
"""
