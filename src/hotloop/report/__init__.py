"""Reports: records become sections, sections become text, one file a format; nothing here runs anything."""
