"""The figures of reports, drawn as SVG: points in, a picture out."""
