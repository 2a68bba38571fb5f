package httpapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/pkg/graph/readmodel"
)

// ProjectionName is the name of a projection of mneme.
type ProjectionName string

// Schema implements huma.SchemaProvider.
func (ProjectionName) Schema(huma.Registry) *huma.Schema { return oneOf(readmodel.Names()) }

// oneOf is the schema of a string that is one of these names.
func oneOf(names []string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: each(names, func(name string) any { return name })}
}

// rebuildName is a projection's name, or that of all of them. The schema does not restrict it, because
// an unknown name is 404.
type rebuildName string

// Schema implements huma.SchemaProvider.
func (rebuildName) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: strings.Join(append(readmodel.Names(), "or "+rebuild.All), ", ")}
}
