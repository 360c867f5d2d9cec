"""The result of a preview as one page of HTML, which any browser opens without a network."""

from .document import render_html as render_html
