"""What every page in a browser shares: security headers, same-origin checks, templates, style and a small script."""
