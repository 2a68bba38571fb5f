package project

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mneme.dev/mneme/pkg/files"
)

func TestRemotesOfOneRepositoryAreEqual(t *testing.T) {
	for _, remote := range []string{
		"git@github.com:o/r.git", "https://github.com/o/r", "https://GitHub.com/o/r.git/", "ssh://git@github.com:22/o/r.git", "https://user:token@github.com/o/r.git", "github.com/o/r",
	} {
		require.Equal(t, "github.com/o/r", Remote(remote), remote)
	}
}

func TestAPlaceIsTheProjectElseTheRepositoryElseTheFolder(t *testing.T) {
	require.Equal(t, Place{Name: "p", Folder: "/w/r", Fixed: true}, PlaceOf("p", "", "/w/r/"))
	require.Equal(t, Place{Name: "h/o/r", Folder: "/w/r", Fixed: true}, PlaceOf("", "git@h:o/r.git", "/w/r"))
	require.Equal(t, Place{Name: "/w/r", Root: "/w/r", Folder: "/w/r/cmd", Fixed: true}, PlaceOf("", "/w/r", "/w/r/cmd"))
	require.Equal(t, Place{Name: "/w/r", Root: "/w/r", Folder: "/w/r/.worktrees/a/b"}, PlaceOf("", "", "/w/r/.worktrees/a/b"))
	require.Equal(t, Place{Name: "/w/r", Folder: "/w/r"}, PlaceOf("", "", "/w/r"))
	require.Equal(t, Place{}, PlaceOf("", "", "relative"))
}

func TestFilesAreNamedAsSeenFromTheirCheckout(t *testing.T) {
	tree := PlaceOf("", "", "/w/r/.worktrees/4")
	require.Equal(t, "cmd/a.go", tree.Relative("/w/r/.worktrees/4/cmd/a.go"))
	require.Equal(t, "cmd/a.go", tree.Relative("/w/r/cmd/a.go"))
	require.Equal(t, "cmd/a.go", tree.Relative("/w/r/.worktrees/5/cmd/a.go"))
	require.Equal(t, "/w/rest/a.go", tree.Relative("/w/rest/a.go"))
}

func TestNamesStayDifferentAndShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		long := strings.Repeat("x", rapid.IntRange(0, 2).Draw(t, "times")*MaxName) + name
		got := Name(long)
		require.LessOrEqual(t, len(got), MaxName)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, Name(got))
	})
	require.NotEqual(t, Name(strings.Repeat("x", 2*MaxName)), Name(strings.Repeat("x", 2*MaxName)+"y"))
}

func commandsOf(t *testing.T, script string) (list []string, decides []bool) {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": script})
	require.NoError(t, err)
	place := PlaceOf("", "", "/w/r")
	for _, ran := range files.DefaultTable().Ran(files.Call{Tool: "Bash", Arguments: raw, Cwd: place.Folder}) {
		if c := Command(ran, place); c != "" {
			list, decides = append(list, c), append(decides, ran.Decides)
		}
	}
	return list, decides
}

func TestCommandsAreNormalised(t *testing.T) {
	for script, want := range map[string][]string{
		"mise run test 2>&1 | tail -30":                             {"mise run test"},
		"cd /w/r && mise run fmt && mise run lint":                  {"mise run fmt", "mise run lint"},
		"cd /w/r/sub && make":                                       {"cd sub && make"},
		"go test -count 1 ./...":                                    {"go test ./..."},
		"mise run test -- -run TestX -v":                            {"mise run test"},
		"npm run lint -- --fix":                                     {"npm run lint -- --fix"},
		"cd /w/r/.worktrees/4 && make":                              {"make"},
		"cd /w/r/.worktrees/4/sub && make":                          {"cd sub && make"},
		"go test -v -run \"TestX\" -count=1 /w/r/pkg/x":             {"go test ./pkg/x"},
		"make -k test":                                              {"make -k test"},
		"pytest -k upload tests":                                    {"pytest tests"},
		"docker run -v /w/r:/src --rm img":                          {"docker run -v /w/r:/src --rm img"},
		"pnpm --filter web test":                                    {"pnpm --filter web test"},
		"dotnet test --filter Upload":                               {"dotnet test"},
		"FOO=1 timeout 60 go build ./...":                           {"go build ./..."},
		"git commit -m \"$(cat <<'EOF'\nlong\nEOF\n)\" && git push": {"git commit", "git push"},
		"ls -la; cat a.go | grep x; echo done":                      nil,
		"if true; then make; fi":                                    nil,
		"not ( shell":                                               nil,
	} {
		got, _ := commandsOf(t, script)
		require.Equal(t, want, got, script)
	}
}

func TestTheFamilyOfACommandIsWithoutTheFlagsBeforeWhatItDoes(t *testing.T) {
	for command, want := range map[string]string{
		"make -k test":                "make test",
		"make -C api -j 4 test":       "make test",
		"cd api && make -j4 test":     "make test",
		"make -k":                     "make",
		"npm --prefix web test":       "npm test",
		"npm --prefix=web run lint":   "npm run lint",
		"go -C api test ./...":        "go test",
		"cargo +nightly test --all":   "cargo test",
		"go test ./...":               "go test",
		"eslint --fix src":            "eslint --fix",
		"python -m pytest tests/unit": "python -m",
		"npm run lint":                "npm run lint",
		"npm run --silent lint":       "npm run lint",
		"docker run --rm img-a make":  "docker run img-a",
		"docker run -v .:/src img":    "docker run .:/src",
		"docker run --help":           "docker run --help",
		"make":                        "make",
		"":                            "",
	} {
		require.Equal(t, want, family(command), command)
	}
}

func TestTheOutcomeOfACommandCountsOnlyIfTheScriptsStatusIsIts(t *testing.T) {
	for script, want := range map[string][]bool{
		"make": {true}, "cd /w/r && make": {true}, "make | tail": {false}, "make && make lint": {false, false}, "make || true": {false}, "make; make lint": {false, false},
	} {
		_, decides := commandsOf(t, script)
		require.Equal(t, want, decides, script)
	}
}

func TestLessonsAreCorrectionsAndStandingInstructions(t *testing.T) {
	for text, want := range map[string][]string{
		"no, use the paths package for this.":                            {"no, use the paths package for this."},
		"Great. From now on always run mise run lint before you commit.": {"From now on always run mise run lint before you commit."},
		"can you always reproduce it?":                                   nil,
		"please add a test":                                              nil,
		"panic: never {reached} goroutine 1":                             nil,
	} {
		require.Equal(t, want, lessons(text, later), text)
	}
	require.Empty(t, lessons("no, use the paths package for this.", opening), "nothing to correct yet")
}

func TestLessonsOfOtherLanguages(t *testing.T) {
	for _, text := range []string{
		"Non, le client doit réessayer, pas le stockage.",
		"N’utilise pas l'ancienne API pour les envois.",
		"À l'avenir, lance mise run lint avant de valider.",
		"Il ne faut jamais modifier les fichiers générés.",
		"Nein, der Client wiederholt den Upload, nicht der Speicher.",
		"Ändere die generierten Dateien bitte nicht.",
		"Führe vor jedem Commit immer mise run lint aus.",
		"No, el cliente repite la subida, no el almacén.",
		"Ejecuta siempre mise run lint antes de confirmar.",
		"Não, o cliente repete o envio, não o armazenamento.",
		"Nunca altere os arquivos gerados.",
		"Non modificare i file generati a mano.",
		"Nei test non usare mai il client vero.",
		"Devi eseguire mise run lint prima del commit.",
		"D'ora in poi esegui mise run lint prima del commit.",
		"不要修改生成的文件。",
		"提交之前必须运行 mise run lint。",
		"生成されたファイルは変更しないでください。",
		"コミットの前に必ず lint を実行して。",
		"อย่าแก้ไขไฟล์ที่สร้างขึ้น",
		"รันการทดสอบทุกครั้งก่อน commit",
		"ຢ່າແກ້ໄຂໄຟລ໌ທີ່ສ້າງຂຶ້ນ",
		"ກວດ lint ທຸກຄັ້ງກ່ອນ commit",
		"ไม่ต้องแก้ไขไฟล์ที่สร้างขึ้น",
		"ผิดแล้ว client ต้องลองใหม่ ไม่ใช่ storage",
		"ບໍ່ຄວນແກ້ໄຂໄຟລ໌ທີ່ສ້າງຂຶ້ນ",
		"ទេ client ត្រូវសាកម្តងទៀត",
		"សូមចងចាំរត់តេស្តមុនពេល commit។",
		"កុំកែឯកសារដែលបានបង្កើត។",
		"ត្រូវរត់តេស្តជានិច្ចមុនពេល commit។",
		"ထုတ်လုပ်ထားသောဖိုင်များကို မပြင်ပါနဲ့။",
		"commit မလုပ်မီ စမ်းသပ်မှုများကို အမြဲ လုပ်ပါ။",
	} {
		require.Equal(t, []string{text}, lessons(text, later), text)
		require.True(t, correctionStandsAlone(text), text)
	}
	for _, text := range []string{
		"The limit is based on utilisation of the queue.",
		"Show it for users in Chiang Mai too.",
		"Ajoute un test pour les envois, s'il te plaît.",
		"Le test ne passe toujours pas sur la branche.",
		"Der Test läuft immer noch nicht auf dem Server.",
		"Füge einen Test für den Upload hinzu.",
		"Añade una prueba para las subidas.",
		"Adicione um teste para os envios.",
		"Aggiungi un test per gli invii.",
		"请添加一个上传测试。",
		"我们应该总是重试吗？",
		"アップロードのテストを追加してください。",
		"เพิ่มการทดสอบสำหรับการอัปโหลด",
		"ເພີ່ມການທົດສອບສໍາລັບການອັບໂຫຼດ",
		"បន្ថែមតេស្តសម្រាប់ការផ្ទុកឡើង។",
		"တင်ခြင်းအတွက် စမ်းသပ်မှု ထည့်ပါ။",
		"แก้ไฟล์ต่อไปนี้ให้หน่อย",            // these files
		"ตั้งค่าเริ่มต้นของ timeout เป็น 30", // a default
		"ไม่เป็นไร ทำต่อได้เลย",              // never mind
		"ไม่แน่ใจว่าทำไมการทดสอบล้มเหลว",     // not sure
		"ผิดพลาดตรงไหนของการทดสอบ",           // an error
		"ต้องรันการทดสอบทุกครั้งไหมครับ",     // a question
		"ไม่ใช่ครับ",                         // no
		"ບໍ່ເປັນຫຍັງ ສືບຕໍ່ໄດ້ເລີຍ",          // never mind
		"ຕ້ອງກວດ lint ທຸກຄັ້ງບໍ",             // a question
		"កែការលេចធ្លាយអង្គចងចាំ",             // memory of a machine
		"ខុសគ្នាយ៉ាងដូចម្តេចពីមុន",           // different
		"ဘာကြောင့် အမြဲ retry လုပ်တာလဲ။",     // a question
		"စမ်းသပ်မှုက အမြဲ ကျရှုံးနေတာလား။",   // a question
	} {
		require.Empty(t, lessons(text, later), text)
	}
	for _, text := range []string{"Non, attends une seconde avant de changer ça.", "Nein, lass uns das vorerst so machen.", "No, espera un momento con eso.", "不要急，等一下再改这个文件。"} {
		require.False(t, correctionStandsAlone(text), text)
	}
	require.Equal(t, []string{"不要修改生成的文件。", "提交前必须运行测试。"}, lessons("不要修改生成的文件。提交前必须运行测试。", later))
	require.Equal(t, []string{"កុំកែឯកសារដែលបានបង្កើត។", "ត្រូវរត់តេស្តជានិច្ច។"}, lessons("កុំកែឯកសារដែលបានបង្កើត។ ត្រូវរត់តេស្តជានិច្ច។", later))
}

func TestWhatIsSaidOfTheTaskAtHandIsNoInstruction(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"I think we should also keep the owner of an upload.",
		"Wir sollten auch den Besitzer eines Uploads speichern.",
		"Debemos guardar también el dueño de la subida.",
		"我们应该也保存上传的所有者。",
		"The retry of an upload is off by default.",
		"Der Upload wird standardmäßig nicht wiederholt.",
		"アップロードの再試行はデフォルトで無効です。",
		"Hide the notice in the future state of the gallery.",
		"You can always open the gallery to see what was uploaded.",
		"The second argument of upload is never used anywhere.",
		"Review the places where we use the old client.",
		"And if we don't retry, the upload is lost.",
		"Yes, but we don't need to commit the test of the upload.",
		"+    // Always retried by the client, see retry.go",
		"hint := \"never retry an upload of the gallery\"",
		"Make the comment clearer: \"We don't retry an upload here.",
	} {
		require.Empty(t, lessons(text, later), text)
	}
	require.Equal(t, []string{"การทดสอบนี้ช้าเกินไป"}, lessons("การทดสอบนี้ช้าเกินไป", refusing))
	for _, text := range []string{
		"In the future, run the linter before you commit.",
		"We don't use the old client any more.",
		"For uploads we use the shared client of the gallery.",
		"If there is an error, always retry the upload.",
		"Uploads must never be retried by the store.",
		"By convention, tests of the client begin with Client.",
		"let's not retry uploads in the store",
		"prefer a table of cases in tests",
	} {
		require.Equal(t, []string{text}, lessons(text, later), text)
	}
}

func TestAFailureThatIsSolvedIsAFix(t *testing.T) {
	no, yes := false, true
	var d Digest
	seq := uint64(0)
	apply := func(c Change) {
		seq++
		d.Apply(&c, seq)
	}
	apply(Change{Called: &Called{ID: "1", Runs: []RunOf{{"make test", true}}}})
	apply(Change{Outcome: &Outcome{Call: "1", Success: &no, Error: "a.go:1: undefined: x"}})
	apply(Change{Called: &Called{ID: "2", Touched: []Touch{{Path: "a.go", Write: true}}}})
	apply(Change{Outcome: &Outcome{Call: "2", Success: &yes}})
	apply(Change{Called: &Called{ID: "3", Runs: []RunOf{{"make test", true}}}})
	require.True(t, d.Runs[0].BadLast)
	apply(Change{Outcome: &Outcome{Call: "3", Success: &yes}})
	require.Equal(t, []Fix{{Command: "make test", Trouble: "a.go:1: undefined: x", Changed: []string{"a.go"}, Seq: 6}}, d.Fixes)
	require.Empty(t, d.Troubles)
	require.Equal(t, Run{Command: "make test", Runs: 2, Good: 1, Bad: 1, GoodSeq: 6, Seq: 6}, d.Runs[0])
}

func TestAFailedCallTouchesNothingWhicheverCameFirst(t *testing.T) {
	no := false
	called, failed := Change{Called: &Called{ID: "1", Touched: []Touch{{Path: "a.go"}}}}, Change{Outcome: &Outcome{Call: "1", Success: &no}}
	for _, order := range [][]Change{{called, failed}, {failed, called}} {
		var d Digest
		for i := range order {
			d.Apply(&order[i], uint64(i+1))
		}
		require.Empty(t, d.Files)
		require.Empty(t, d.Open)
	}
}

func TestTheNameOfALaterIndexNamesItsProject(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", MaxName)
	for _, name := range []string{"/home/ada/cli", "cli#1", "#2", "c#", "a#02", long} {
		require.Equal(t, name, Indexed(name), "the first index has the project's own name")
		require.Equal(t, name, Again(name, 1))
	}
	require.Equal(t, "/home/ada/cli#2", Again("/home/ada/cli", 2))
	require.Equal(t, "/home/ada/cli", Indexed("/home/ada/cli#2"))
	require.Equal(t, "cli#2", Indexed("cli#2#3"))
	require.NotEqual(t, Again(long, 2), Again(long, 3))
	require.LessOrEqual(t, len(Again(long, 2)), MaxName)
}
