package project

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"mneme.dev/mneme/pkg/recall"
)

// A language has the expressions by which users instruct and correct in it, in lower case.
type language struct {
	standing   string // parts of an instruction that holds beyond the moment
	correcting string // beginnings of a correction of what the agent did
	passing    string // parts of what holds for the moment only
}

// spaced are languages that separate words by spaces. Their expressions match whole words.
var spaced = []language{
	{ // English
		standing: `always|never|from now on|in (?:the )?future,|every time|whenever|as a rule|we (?:prefer|use|don't|do not)|you must|must not|do not ever|don't ever|` +
			`make sure (?:to|that|you)|remember (?:to|that)|keep in mind|prefer .{0,60} ?over|(?:our|by|naming) conventions?`,
		correcting: `no|nope|not? (?:like )?that|actually|wrong|that'?s (?:not|wrong)|this is (?:not|wrong)|stop|don'?t|do not|please (?:don'?t|do not)|wait|instead|` +
			`use .{1,60} (?:instead|rather)|you (?:forgot|missed|should have|shouldn'?t|broke)|why did you|i (?:said|told you|asked|did not (?:say|ask)|didn'?t (?:say|ask))|undo|revert|` +
			`prefer|avoid|let'?s (?:not|avoid)`,
		passing: `hang on|no,? wait|wait (?:a|until|till)|a sec|a second|for now|keep going|just continue|let's discuss|let's talk|then i'll|i'll let you know|i'll take it from here`,
	},
	{ // French
		standing: `toujours|jamais|désormais|dorénavant|à l'avenir|à partir de maintenant|chaque fois|en règle générale|n'oublie[sz]? pas|souviens-toi|souvenez-vous|` +
			`gardez? (?:à l'esprit|en tête)|assure-toi|assurez-vous|veillez? à|(?:on|nous) (?:n')?(?:préfère|préférons|utilise|utilisons|évite|évitons)|il ne faut|(?:tu|vous) (?:ne )?(?:dois|devez)`,
		correcting: `non|pas (?:ça|comme ça|celui|celle)|en fait|faux|c'est (?:faux|pas)|ce n'est pas|arrêtez?|s'il (?:te|vous) plaît,? n(?:e |')\pL+|n(?:e |')[\pL-]+ (?:\pL+ )?(?:pas|plus)|attend[sz]|attendez|plutôt|` +
			`utilisez? .{1,60} plutôt|(?:tu|vous) a(?:s|vez|urais|uriez) (?:oublié|raté|cassé|dû)|pourquoi (?:as-tu|tu as|avez-vous)|j(?:e t)?'ai (?:dit|demandé)|annulez?`,
		passing: `attend[sz]|attendez|pour l'instant|pour le moment|une seconde|un instant|continue comme ça|on en discute|discutons`,
	},
	{ // German
		standing: `immer|nie|niemals|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|jedes mal|jedesmal|grundsätzlich|in der regel|denkt? daran|vergiss nicht|vergesst nicht|achtet? darauf|` +
			`(?:stelle?|stellt) sicher|wir (?:verwenden|nutzen|benutzen|bevorzugen)|du (?:musst|sollst|darfst)|konvention`,
		correcting: `nein|nicht (?:so|das|dies\pL*)|eigentlich|falsch|das ist (?:nicht|falsch)|stopp?|warte|stattdessen|` +
			`(?:bitte )?(?:ändere?|benutze?|committe?|entferne?|erstelle?|fasse?|führe?|füge?|installiere?|lass|lege?|lösche?|mache?|nimm|nutze?|pushe?|rufe?|schreibe?|setze?|starte?|teste?|verschiebe?|verwende) (?:[^,]{1,60} )?(?:nicht|nichts|keine?[nmrs]?|nie|niemals|stattdessen|lieber)|` +
			`du (?:hast|hättest) .{1,60}(?:vergessen|übersehen|sollen)|warum hast du|ich (?:sagte|habe gesagt|hatte gesagt)|mach .{1,30} rückgängig`,
		passing: `warte|vorerst|fürs erste|erst ?mal|moment mal|einen moment|mach (?:einfach )?weiter|lass uns (?:reden|besprechen)`,
	},
	{ // Spanish
		standing: `siempre|nunca|jamás|a partir de ahora|de ahora en adelante|en el futuro|cada vez|por regla general|no (?:te )?olvid\pL+|recuerd[ae]|asegúr(?:ate|ese)|t(?:en|enga) en cuenta|` +
			`(?:no )?(?:preferimos|usamos)|debes|convención`,
		correcting: `no|así no|eso no|en realidad|está mal|(?:para|detente)[,.!]|por favor,? no|espera|en su lugar|en vez|mejor|` +
			`usa .{1,60} en (?:su lugar|vez)|te olvidaste|(?:has|deberías haber) \pL+d[oa]|por qué (?:has|hiciste)|(?:te )?(?:dije|he dicho|pedí)|deshaz|revierte`,
		passing: `espera|por ahora|de momento|por el momento|un segundo|un momento|sigue así`,
	},
	{ // Portuguese
		standing: `sempre|nunca|jamais|a partir de agora|daqui (?:em|para) (?:diante|frente)|no futuro|(?:toda|cada) vez|como regra|não (?:se |te )?esque[cç]\pL+|lembre(?:-se)?|certifique-se|garanta que|` +
			`tenha em mente|(?:não )?(?:preferimos|usamos)|(?:você|tu) (?:não )?deves?|convenção`,
		correcting: `não|assim não|isso não|na verdade|errado|(?:isso )?está errado|par[ae][,.!]|por favor,? não|esper[ae]|em vez|` +
			`us[ae] .{1,60} em vez|(?:você|tu) (?:esquec|quebr|deveria)\pL*|por que você|eu (?:disse|pedi)|desfa[zç]a?|reverta`,
		passing: `esper[ae]|por enquanto|por ora|um segundo|um momento|continua assim`,
	},
	{ // Italian
		standing: `sempre|non \pL+ mai|mai più|d'ora in (?:poi|avanti)|in futuro|ogni volta|di regola|non (?:ti )?dimenticare|ricorda(?:ti)?|assicurati|tieni (?:presente|a mente)|` +
			`(?:preferiamo|usiamo)|(?:non )?devi \pL+re|convenzione`,
		correcting: `no|non (?:così|quello|questo|\pL+re)|in realtà|(?:è )?sbagliato|(?:fermati|basta)[,.!]|per favore,? non|aspetta|invece|` +
			`usa .{1,60} invece|hai (?:dimenticato|saltato|rotto)|avresti dovuto|perché hai|(?:ti )?ho (?:detto|chiesto)|annulla|ripristina`,
		passing: `aspetta|per ora|per il momento|un secondo|un attimo|continua così`,
	},
}

// unspaced are languages that are written without spaces. Their expressions match anywhere.
var unspaced = []language{
	{ // Chinese
		standing:   `总是|總是|永远|永遠|始终|始終|一律|以后|以後|今后|今後|从现在起|從現在起|每次|每当|每當|记住|記住|记得|記得|务必|務必|必须|必須|不得|切勿|我们(?:不|从不)|我們(?:不|從不)|约定|約定`,
		correcting: `不要|别|別|不是|不对|不對|错了|錯了|停|等等|等一下|撤销|撤銷|回滚|还原|還原|应该|應該|你忘|为什么你|為什麼你|你为什么|你為什麼|我说过|我說過|请不要|請不要|请勿|請勿|改用`,
		passing:    `等等|等一下|暂时|暫時|先这样|先這樣|继续吧|繼續吧`,
	},
	{ // Japanese
		standing:   `常に|いつも|必ず|決して|絶対に|今後|これからは|毎回|忘れないで|覚えておいて|原則|規約|してはいけ|しないこと`,
		correcting: `いや|いいえ|違う|違います|ちがう|そうじゃ|そうでは|待って|やめて|止めて|なぜ|元に戻して|.{1,30}(?:じゃなくて|ではなく|しないで)`,
		passing:    `待って|とりあえず|一旦`,
	},
	{ // Thai
		standing:   `เสมอ|ทุกครั้ง|ห้าม|จากนี้ไป|ต่อจากนี้|อย่าลืม|จำไว้|ต้องไม่|เราไม่ใช้`,
		correcting: `ไม่(?:ใช่|ถูก|ต้อง|ควร|เอา|ใช้|ให้)|(?:กรุณา|โปรด)?อย่า|หยุด|ผิด(?:$|[^\p{Thai}]|แล้ว|ไฟล์)|เดี๋ยวก่อน|รอก่อน|ทำไมคุณ|ย้อนกลับ|ยกเลิก`,
		passing:    `เดี๋ยวก่อน|รอก่อน|รอสักครู่|ชั่วคราว`,
	},
	{ // Lao
		standing:   `ສະເໝີ|ສະເຫມີ|ທຸກຄັ້ງ|ຫ້າມ|ຢ່າລືມ|ຈື່ໄວ້`,
		correcting: `ບໍ່(?:ແມ່ນ|ຖືກ|ຕ້ອງ|ຄວນ|ເອົາ|ໃຊ້|ໃຫ້)|(?:ກະລຸນາ)?ຢ່າ|ຢຸດ|ຜິດ(?:$|[^\p{Lao}]|ແລ້ວ)|ລໍຖ້າ`,
		passing:    `ລໍຖ້າ|ຊົ່ວຄາວ`,
	},
	{ // Khmer
		standing:   `ជានិច្ច|រាល់ពេល|គ្រប់ពេល|ហាម|កុំភ្លេច|(?:^|\s|សូម|ត្រូវ)ចងចាំ|ចងចាំថា`,
		correcting: `ទេ(?:$|[^\p{Khmer}])|មិនមែន|(?:សូម)?កុំ|ឈប់|ខុស(?:$|[^\p{Khmer}]|ហើយ)|រង់ចាំ`,
		passing:    `រង់ចាំ|បណ្តោះអាសន្ន|បណ្ដោះអាសន្ន`,
	},
	{ // Burmese
		standing:   `အမြဲ|ဘယ်တော့မှ|အကြိမ်တိုင်း|မမေ့ပါနဲ့|မှတ်ထား`,
		correcting: `မဟုတ်|မှားနေ|မှားတယ်|ရပ်ပါ|ခဏစောင့်|.{1,60}(?:ပါနဲ့|ပါနှင့်)`,
		passing:    `ခဏစောင့်|ယာယီ`,
	},
}

// asking matches the end of a question in languages that use no question mark.
var asking = regexp.MustCompile(`(?:(?:ไหม|มั้ย|รึเปล่า)\s*(?:ครับ|คะ|ค่ะ)?|ບໍ|လား|လဲ)[\s။.]*$`)

// still are expressions with words of [language].standing that instruct nobody: they state a fact, or say what "we" do only if or
// where something is so.
var (
	still       = regexp.MustCompile(`toujours pas|immer noch|\b(?:is|are|was|were) (?:always|never)\b|\bcan always\b|\b(?:if|so|can|could|should|where|when|once) we\b|\bwe (?:don't|do not) need\b`)
	apostrophes = strings.NewReplacer("\u2019", "'")
)

var (
	// instructs reports whether a text has an instruction that holds beyond the moment.
	instructs = anyOf(`(?:^|[^\pL\pN_])`, `(?:$|[^\pL\pN_])`, ``, func(l language) string { return l.standing })

	// corrects reports whether a text begins like a correction.
	corrects = anyOf(`^`, `(?:$|[\s,.!:;])`, `^`, func(l language) string { return l.correcting })

	// passes reports whether a text holds for the moment only.
	passes = anyOf(`(?:^|[^\pL\pN_])`, `(?:$|[^\pL\pN_])`, ``, func(l language) string { return l.passing })
)

// anyOf matches what one of the languages has: in spaced ones between before and after, in the others after begin.
// The expressions are compiled at first use, because that takes milliseconds and most commands of the program never need
// them. Those of the unspaced languages, which can begin at any character and so take longest, are tried only where there
// are characters of such a language.
func anyOf(before, after, begin string, of func(language) string) func(text string) bool {
	compile := func(before string, list []language, after string) func() *regexp.Regexp {
		return sync.OnceValue(func() *regexp.Regexp {
			var parts []string
			for _, l := range list {
				parts = append(parts, of(l))
			}
			return regexp.MustCompile(before + `(?:` + strings.Join(parts, `|`) + `)` + after)
		})
	}
	words, anywhere := compile(before, spaced, after), compile(begin, unspaced, ``)
	matches := func(text string) bool {
		return words().MatchString(text) || isUnspaced(text) && anywhere().MatchString(text)
	}
	return func(text string) bool {
		text = apostrophes.Replace(strings.ToLower(text))
		return matches(text) && matches(still.ReplaceAllString(text, ""))
	}
}

// isUnspaced reports whether a text has characters of a language that is written without spaces.
func isUnspaced(text string) bool { return strings.ContainsFunc(text, recall.Unspaced) }

// isDense reports whether a text has characters that are syllables or words: a few of them make a sentence.
func isDense(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) })
}
