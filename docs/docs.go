// Package docs holds the documentation, so that programs can serve the pages of their own version.
package docs

import "embed"

// Files has the pages, as Markdown, and their pictures.
//
//go:embed *.md */*.md images
var Files embed.FS
