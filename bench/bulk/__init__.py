"""The parts of ``bench/big_database.py``: what is loaded, how, and what is asked."""
