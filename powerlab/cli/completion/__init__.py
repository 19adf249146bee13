"""Shell completion: what may follow which words (``table``), written for each shell."""
