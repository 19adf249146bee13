"""Several devices that train together as one sweep: the first one measures, the others follow (:mod:`.member`)."""
