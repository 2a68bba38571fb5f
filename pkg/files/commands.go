package files

// command says which operands of a shell command are files. Options are words that begin
// with "-"; "--" ends them.
type command struct {
	Names []string
	Kind  Kind

	// Valued lists options whose value is the next word or the rest of the same word.
	Valued []string

	// Skip is the number of leading operands that are not files, such as a pattern or a
	// script. If one of the options in Given is present, it is 0.
	Skip  int
	Given []string

	// InPlace lists options that turn a reader into a writer; a suffix may follow them.
	InPlace []string

	// Copies says that the last operand is written and the others are its sources, which
	// are read if Kind is KindRead and removed otherwise.
	Copies bool

	// Until says that only operands before the first option are files, as with find.
	Until bool

	// Refuse lists options that give the operands another meaning. If a command has one
	// of them, none of its operands counts as a file.
	Refuse []string
}

// shellCommands are the commands that obviously read, write, search or list their operands.
// The options are those of the GNU and BSD tools.
var shellCommands = []command{
	{Names: []string{"cat", "tac", "nl", "zcat", "less", "more", "wc", "cmp", "md5sum", "sha1sum", "sha256sum"}, Kind: KindRead},
	{Names: []string{"head", "tail"}, Kind: KindRead, Valued: []string{"-n", "-c", "--lines", "--bytes"}},
	{Names: []string{"bat", "batcat"}, Kind: KindRead,
		Valued: []string{"-r", "-l", "-H", "-m", "--line-range", "--language", "--highlight-line", "--style", "--theme", "--color", "--paging"}},
	{Names: []string{"diff"}, Kind: KindRead, Valued: []string{"-U", "-C", "-I", "-x"}, Refuse: []string{"-r", "--recursive"}},
	{Names: []string{"xxd"}, Kind: KindRead, Valued: []string{"-c", "-g", "-l", "-o", "-s"}, Refuse: []string{"-r"}},
	{Names: []string{"hexdump"}, Kind: KindRead, Valued: []string{"-e", "-f", "-n", "-s"}},
	{Names: []string{"od"}, Kind: KindRead, Valued: []string{"-A", "-j", "-N", "-S", "-t"}},
	{Names: []string{"strings"}, Kind: KindRead, Valued: []string{"-n", "-t", "-e"}},
	{Names: []string{"cut"}, Kind: KindRead, Valued: []string{"-b", "-c", "-d", "-f", "--delimiter", "--fields"}},
	{Names: []string{"sort"}, Kind: KindRead, Valued: []string{"-k", "-t", "-S", "-T", "--key"}, Refuse: []string{"-o", "--output"}},
	{Names: []string{"sed", "gsed"}, Kind: KindRead, Valued: []string{"-e", "-f", "-l", "--expression", "--file"},
		Skip: 1, Given: []string{"-e", "-f", "--expression", "--file"}, InPlace: []string{"-i", "-I", "--in-place"}},
	{Names: []string{"awk", "gawk", "mawk"}, Kind: KindRead, Valued: []string{"-F", "-v", "-f"}, Skip: 1, Given: []string{"-f"}, Refuse: []string{"-i"}},
	{Names: []string{"jq", "yq"}, Kind: KindRead, Valued: []string{"-f", "-L", "--indent", "--from-file"}, Skip: 1, Given: []string{"-f", "--from-file"},
		Refuse: []string{"-n", "-i", "--null-input", "--arg", "--argjson", "--args", "--jsonargs", "--slurpfile", "--rawfile"}},
	{Names: []string{"grep", "egrep", "fgrep", "zgrep"}, Kind: KindSearch, Skip: 1, Given: []string{"-e", "-f", "--regexp", "--file"},
		Valued: []string{"-A", "-B", "-C", "-m", "-e", "-f", "-d", "-D", "--after-context", "--before-context", "--context", "--max-count",
			"--include", "--exclude", "--exclude-dir", "--regexp", "--file", "--color"}},
	{Names: []string{"rg", "ripgrep"}, Kind: KindSearch, Skip: 1, Given: []string{"-e", "-f", "--regexp", "--file", "--files"},
		Valued: []string{"-A", "-B", "-C", "-E", "-M", "-T", "-d", "-e", "-f", "-g", "-j", "-m", "-r", "-t", "--after-context", "--before-context",
			"--context", "--max-columns", "--max-count", "--max-depth", "--glob", "--iglob", "--type", "--type-not", "--regexp", "--file", "--replace",
			"--sort", "--sortr", "--threads", "--color"}},
	{Names: []string{"ag", "ack"}, Kind: KindSearch, Skip: 1, Valued: []string{"-A", "-B", "-C", "-G", "-m", "--ignore"}},
	{Names: []string{"find", "gfind"}, Kind: KindSearch, Until: true},
	{Names: []string{"fd", "fdfind"}, Kind: KindSearch, Skip: 1, Refuse: []string{"-x", "-X", "--exec", "--exec-batch"},
		Valued: []string{"-E", "-d", "-e", "-t", "--exclude", "--max-depth", "--extension", "--type"}},
	{Names: []string{"ls"}, Kind: KindList, Valued: []string{"-I", "-w", "--ignore"}},
	{Names: []string{"exa", "eza", "tree"}, Kind: KindList, Valued: []string{"-L", "-I", "-P", "--level"}},
	{Names: []string{"du"}, Kind: KindList, Valued: []string{"-d", "--max-depth"}},
	{Names: []string{"tee"}, Kind: KindWrite},
	{Names: []string{"touch"}, Kind: KindWrite, Valued: []string{"-d", "-r", "-t", "--date", "--reference"}},
	{Names: []string{"truncate"}, Kind: KindWrite, Valued: []string{"-s", "-r", "--size", "--reference"}},
	{Names: []string{"cp"}, Kind: KindRead, Copies: true, Valued: []string{"-S", "--suffix"},
		Refuse: []string{"-r", "-R", "-a", "-t", "--recursive", "--archive", "--target-directory", "--parents"}},
	{Names: []string{"mv"}, Kind: KindWrite, Copies: true, Valued: []string{"-S", "--suffix"}, Refuse: []string{"-t", "--target-directory"}},
}

// prefixCommands run the command that follows them. The value is the number of operands in
// between, such as the duration of timeout.
var prefixCommands = map[string]int{
	"sudo": 0, "command": 0, "builtin": 0, "exec": 0, "nohup": 0, "env": 0, "time": 0, "timeout": 1, "gtimeout": 1,
}

// scriptShells run the script that follows -c.
var scriptShells = map[string]bool{"bash": true, "sh": true, "zsh": true, "dash": true, "ksh": true}

var commandsByName = func() map[string]*command {
	byName := map[string]*command{}
	for i := range shellCommands {
		for _, name := range shellCommands[i].Names {
			byName[name] = &shellCommands[i]
		}
	}
	return byName
}()
