package neo4jstore

// projectsLabels describes the nodes of the projection "projects".
func projectsLabels() []Label {
	return []Label{
		{"ProjectsConversation", "What the projection projects knows about a conversation now. It has the same key as the Conversation.", []Property{
			{"key", "`<generation>/<tenant>/<id>`, unique"}, {"generation", "generation of the read model"}, {"checkpoint", "key of its partition's checkpoint"},
			{"tenant", "tenant"}, {"id", "unique in its tenant"}, {"last_seq", "sequence of its newest event"},
			{"digest", "place, requests, answers, commands, files and lessons of the conversation, JSON; for the writer"},
			{"since", "steps since the newest one with a base"},
			{"deleted_seq", "sequence of the event that deleted it"}, {"sweep", "true while rows of the deleted conversation remain"},
		}},
		{"ProjectStep", "What one event changed in a digest. It also has the label ProjectsEvent.", properties(claimedDocs, []Property{
			{"change", "the change, JSON"}, {"base", "the whole digest after the event, JSON; on every 16th step"}, {"based", "its `seq`, if it has a base"},
		})},
		{"ProjectMember", "An entry of a conversation in the list of a project. Entries never change: the newest step says whether one still holds.", []Property{
			{"conversation", "key of the conversation"}, {"seq", "sequence of the event that made it"},
			{"kind", "in: the conversation belongs to the project; root: it shows that the name is the root of a repository; story: it is a chapter of the project; told: it is a chapter that covers the conversation with this name"},
			{"project", "key of the ProjectName"}, {"words", "terms of what the conversation is about, separated by spaces"},
		}},
		{"ProjectName", "A project or a repository that conversations name, shared by a tenant.", []Property{
			{"key", "`<generation>/<tenant>/<kind>/<name>`, unique"}, {"listed", "`<generation>/<tenant>/<kind>/`"}, {"name", "the name: a project, a remote or a path"}, {"tenant", "tenant"},
		}},
		{"ProjectsEvent", "An event that the projection projects has applied. Steps are events with more properties.", claimedDocs},
	}
}
