"""Several sites, one study: noised answers are added up, and no row leaves a site.

`pooled` makes a study of several; `slices` has the arithmetic, `sites` who they are, `codebook` what they call things,
`site_owner` who alone shares noise.
`by_files` does the same without servers: `study_file` has the two files, `received` what a site has answered in them.
Proofs: docs/proofs/pooling.md.
"""

from dpcurate.pooling.by_files import (
    AnswerPreview,
    answer_study,
    combine_study,
    describe_file,
    new_study,
    preview_answer,
    site_public_key,
)
from dpcurate.pooling.codebook import Codebook
from dpcurate.pooling.pooled import Pool, pool
from dpcurate.pooling.site_owner import SiteOwner
from dpcurate.pooling.study_file import SiteAnswer, StudyFile

__all__ = [
    "AnswerPreview", "Codebook", "Pool", "SiteAnswer", "SiteOwner", "StudyFile", "answer_study", "combine_study",
    "describe_file", "new_study", "pool", "preview_answer", "site_public_key",
]  # fmt: skip
