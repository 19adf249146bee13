"""Outlines of the zoo's networks as data: what nodes they have, of what shape and cost, and how they are joined.

A server shows them and knows the networks' names without the engine. ``make networks`` writes the files from the zoo.
"""
