package files

// editorVerbs are the commands of Anthropic's text editor tool, which OpenHands and
// SWE-agent also offer. That of goose writes instead of creating.
var editorVerbs = map[string]Kind{
	"view": KindRead, "create": KindWrite, "write": KindWrite, "str_replace": KindWrite, "insert": KindWrite, "undo_edit": KindWrite,
}

// DefaultRules returns the rules for the tools of Claude Code, Codex, Gemini CLI, Qwen Code, Kimi Code,
// Factory Droid, Copilot CLI, Cursor, OpenHands, SWE-agent, Cline, Roo, Kilo, Continue, goose, Crush, pi, OpenClaw, OpenCode and the file
// system MCP server, and for usual tool names of home-made agents (read_file, edit_file, grep_files,
// brain_search, …). Each call returns a new slice.
func DefaultRules() []Rule {
	return []Rule{
		{ // the generic names; Gemini CLI, Codex, Cline and Roo share some of them
			Tools: []string{
				"read_file", "read_files", "read_text_file", "read_media_file", "read_multiple_files", "read_many_files", "view", "view_image", "view_file", "open_file", "read_file_range",
			},
			Kind: KindRead, Paths: []string{"path", "file_path", "filePath", "absolute_path", "filepath", "target_file", "paths", "file_paths", "files"},
		},
		{
			Tools: []string{
				"write_file", "edit_file", "create_file", "append_file", "write_to_file", "replace_in_file", "replace", "apply_diff",
				"insert_content", "search_and_replace", "search_replace", "str_replace", "multi_edit", "editor",
				"insert_edit_into_file", "replace_string_in_file", "multi_replace_string_in_file", "edit_notebook_file", // VS Code
				"create_new_file", "edit_existing_file", "single_find_and_replace", // Continue
			},
			Kind: KindWrite, Paths: []string{"path", "file_path", "filePath", "filepath", "target_file", "files", "replacements"},
		},
		{
			Tools: []string{"move_file", "copy_file"}, // a moved file no longer exists at its source
			Kind:  KindWrite, Paths: []string{"destination"},
		},
		{
			Tools: []string{"grep_files", "search_files", "brain_search", "codebase_search", "search_codebase", "search_code"},
			Kind:  KindSearch, Paths: []string{"path", "dir_path"}, Result: FormHits,
		},
		{
			Tools: []string{"glob_files", "list_directory", "list_directory_with_sizes", "list_dir", "list_files", "list_code_definition_names", "directory_tree"},
			Kind:  KindList, Paths: []string{"path", "dir_path"}, Result: FormNames, Below: true,
		},

		// Claude Code
		{Tools: []string{"Read", "NotebookRead"}, Kind: KindRead, Paths: []string{"file_path", "notebook_path", "path", "filePath", "filepath"}},
		{Tools: []string{"Edit", "MultiEdit", "Write", "NotebookEdit"}, Kind: KindWrite, Paths: []string{"file_path", "notebook_path", "path", "filePath", "filepath"}},
		{Tools: []string{"Grep"}, Kind: KindSearch, Paths: []string{"path", "file_path"}, Result: FormHits},
		{Tools: []string{"Glob"}, Kind: KindSearch, Paths: []string{"path", "folder"}, Result: FormPaths},
		{Tools: []string{"LS", "tree"}, Kind: KindList, Paths: []string{"path", "directory_path"}},
		{Tools: []string{"LSP"}, Kind: KindSearch, Paths: []string{"filePath", "file_path"}, Result: FormHits},

		// shells under all their names
		{
			Tools: []string{
				"Bash", "shell", "shell_command", "exec_command", "local_shell", "container.exec", "run_shell_command", "execute_bash",
				"execute_command", "Execute", "run_command", "run_commands", "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "run_in_terminal", "terminal", "run", "exec",
			},
			Shell:  []string{"command", "cmd"},
			Shells: []string{"commands"},
			Folder: []string{"workdir", "cwd", "directory", "dir_path"},
		},
		{Tools: []string{"apply_patch", "applypatch"}, Patch: []string{"input", "patch", "patchText", "command"}},
		{Tools: []string{"patch"}, Kind: KindWrite, Paths: []string{"path"}, Patch: []string{"input", "patch", "patchText"}}, // Hermes Agent replaces a text in a file, or applies a patch

		// Gemini CLI
		{Tools: []string{"search_file_content", "grep_search"}, Kind: KindSearch, Paths: []string{"path", "dir_path"}, Result: FormHits, Below: true},
		{Tools: []string{"glob", "file_glob_search"}, Kind: KindSearch, Paths: []string{"path", "dir_path"}, Result: FormPaths, Below: true},

		// OpenHands and Anthropic's own names
		{
			Tools: []string{"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor"},
			Verb:  "command", Verbs: editorVerbs, Paths: []string{"path"}, Result: FormView,
		},

		// SWE-agent: the call repeats the command line; an edit names no file
		{Tools: []string{"open"}, Kind: KindRead, Paths: []string{"path"}, Line: "command", Operand: 1, Result: FormOpen},
		{Tools: []string{"create"}, Kind: KindWrite, Paths: []string{"filename", "path", "file_path"}, Line: "command", Operand: 1, Result: FormOpen},
		{Tools: []string{"insert"}, Kind: KindWrite, Paths: []string{"path"}, Result: FormOpen},
		{Tools: []string{"find_file"}, Kind: KindSearch, Paths: []string{"dir"}, Line: "command", Operand: 2, Result: FormPaths, Below: true},
		{Tools: []string{"search_file"}, Kind: KindSearch, Paths: []string{"file"}, Line: "command", Operand: 2},
		{Tools: []string{"search_dir"}, Kind: KindSearch, Paths: []string{"dir"}, Line: "command", Operand: 2, Result: FormHits},

		// Cursor, whose arguments are those that the editor has read. Its CLI also has names of Claude Code
		{Tools: []string{"read_file_v2"}, Kind: KindRead, Paths: []string{"targetFile"}},
		{Tools: []string{"edit_file_v2"}, Kind: KindWrite, Paths: []string{"relativeWorkspacePath", "target_file"}},
		{Tools: []string{"StrReplace"}, Kind: KindWrite, Paths: []string{"path"}},
		{Tools: []string{"list_dir_v2"}, Kind: KindList, Paths: []string{"targetDirectory"}},
		{Tools: []string{"ripgrep_raw_search"}, Kind: KindSearch, Paths: []string{"path"}},
		{Tools: []string{"glob_file_search"}, Kind: KindSearch, Paths: []string{"targetDirectory", "target_directory"}},

		// pi and OpenCode use lower-case names, as does SWE-agent's edit
		{Tools: []string{"edit"}, Kind: KindWrite, Paths: []string{"path", "file_path", "filePath"}, Result: FormOpen},
		{Tools: []string{"grep"}, Kind: KindSearch, Paths: []string{"path"}, Result: FormHits, Below: true},
		{Tools: []string{"find"}, Kind: KindSearch, Paths: []string{"path"}, Result: FormPaths, Below: true},
		{Tools: []string{"ls", "list"}, Kind: KindList, Paths: []string{"path", "dirpath", "dirPath"}, Result: FormNames, Below: true},
	}
}
