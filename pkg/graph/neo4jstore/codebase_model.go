package neo4jstore

// codebaseLabels describes the nodes of the projection "code".
func codebaseLabels() []Label {
	return []Label{
		{"CodeConversation", "The index of a project's code, which is a conversation of its own.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"last_seq", "sequence of its newest event"},
			{"project", "the project, once its folder was read"}, {"listed", "`<generation>/<tenant>`; missing before that, and if the index is deleted"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted index remain"},
		}},
		{"CodeVersion", "What a file holds from an event on. The newest one of a path counts. It also has the label CodeEvent.", properties(claimedDocs, []Property{
			{"event_id", "CloudEvents id of its event"}, {"path", "the file, from the root of the project"}, {"hash", "SHA-256 of its bytes, in hex"}, {"removed", "true if the file is gone from then on"},
			{"language", "its language"}, {"lines", "number of lines"}, {"left_out", "scopes over a limit"},
			{"scopes", "names, kinds and lines of its scopes, JSON"}, {"bags", "their terms and vectors, for searches, as package codebase encodes them"},
		})},
		{"CodeScope", "A function, type or other piece of a version of a file. It also has the label Scope, whose vector index finds it.", []Property{
			{"conversation", "key of the index"}, {"tenant", "tenant"}, {"seq", "sequence of its CodeVersion"}, {"part", "number in the version, from 0"},
			{"project_path", "the file, from the root of the project"}, {"name", "name, as in Store.Close"}, {"kind", "function, type, value, section or block"},
			{"start_line", "first line, from 1"}, {"end_line", "last line"}, {"text", "its beginning"},
			{"embedding", "vector of its beginning from the built-in embeddings; missing if the embeddings know none of its words"},
		}},
		{"CodeScan", "Reading a project's folder began or ended. It also has the label CodeEvent.", properties(claimedDocs, []Property{
			{"event_id", "CloudEvents id of its event"}, {"project", "the project"}, {"root", "the folder"}, {"done", "true if everything in it is indexed"}, {"files", "number of files of the index"},
		})},
		{"CodeEvent", "An event that the projection code has applied. Versions and scans are events with more properties.", claimedDocs},
	}
}
