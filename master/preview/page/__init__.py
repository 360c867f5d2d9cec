"""The result of a preview as one page of HTML, which any browser opens without a network."""

from .document import page_style as page_style
from .document import render_html as render_html
from .document import source_of as source_of
