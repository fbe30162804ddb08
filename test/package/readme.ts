/** What the README has for a newcomer: files and commands, so that tests use nothing else. */

/** The files that a document shows: code blocks whose first line is a comment with a file name. */
const BLOCK = /^```\w+\n\/\/ ([\w./-]+\.\w+)\n([\s\S]*?)^```$/gm;

/** File name → content, in the order of the document. */
export function filesOf(markdown: string): Map<string, string> {
  return new Map([...markdown.matchAll(BLOCK)].map((block) => [block[1]!, block[2]!]));
}

/** The lines of all `sh` blocks of a chapter (`##`), in order, without comments. */
export function commandsOf(markdown: string, title: string): string[] {
  const chapter = markdown.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  if (chapter === undefined) throw new Error(`there is no chapter '${title}'`);
  const lines = [...chapter.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap((block) => block[1]!.split('\n'));
  return lines.map((line) => line.replace(/\s+#.*/, '').trim()).filter((line) => line !== '');
}
