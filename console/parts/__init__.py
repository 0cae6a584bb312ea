"""Parts that several pages share: rights, the header, the files of others."""
