package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestTheDocumentsExamplesCanBePublished(t *testing.T) {
	b := setup(t)
	var document struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Example  json.RawMessage
						Examples map[string]struct{ Value json.RawMessage }
					}
				}
			}
		}
	}
	b.get("/openapi.json", &document)
	content := document.Paths["/v1/events"].Post.RequestBody.Content
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeBatch}, content[events.ContentTypeBatch].Example, nil)
	single := content[events.ContentTypeEvent].Examples
	require.Len(t, single, 3)
	for _, example := range single {
		b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent}, example.Value, nil)
	}
	var c struct {
		ToolResultCount int `json:"tool_result_count"`
	}
	b.get("/v1/conversations/my-conversation?at_least=3", &c)
	require.Equal(t, 1, c.ToolResultCount)
}

func TestTheDocumentDescribesEveryEventType(t *testing.T) {
	b := setup(t)
	type schema struct {
		Ref   string `json:"$ref"`
		Items *schema
		OneOf []struct {
			Title      string
			Properties map[string]struct{ Title string }
		}
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
		Paths      map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
	}
	b.get("/openapi.json", &document)
	var described []string
	all := document.Components.Schemas["CloudEvent"].OneOf
	foreign := len(all) - 1
	require.Contains(t, all[foreign].Title, "another project")
	for _, one := range all[:foreign] {
		require.Equal(t, one.Title, one.Properties["data"].Title)
		described = append(described, one.Title)
	}
	require.Equal(t, events.Types(), described)

	content := document.Paths["/v1/events"].Post.RequestBody.Content
	require.Len(t, content, 3)
	require.Equal(t, "#/components/schemas/CloudEvent", content[events.ContentTypeEvent].Schema.Ref)
	require.Equal(t, "#/components/schemas/CloudEvent", content[events.ContentTypeBatch].Schema.Items.Ref)
}
