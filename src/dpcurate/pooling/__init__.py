"""Several sites, one study: noised answers are added up, and no row leaves a site.

`pooled` makes a study of several; `slices` has the arithmetic, `sites` who they are, `codebook` what they call things.
Proofs: docs/proofs/pooling.md.
"""

from dpcurate.pooling.codebook import Codebook
from dpcurate.pooling.pooled import Pool, pool

__all__ = ["Codebook", "Pool", "pool"]
