"""The parts of ``bench/database/big_database.py``: what is loaded, how, and what is asked."""
