/** The files that a document shows: code blocks whose first line is a comment with a file name. */
const BLOCK = /^```\w+\n\/\/ ([\w./-]+\.\w+)\n([\s\S]*?)^```$/gm;

/** File name → content, in the order of the document. */
export function filesOf(markdown: string): Map<string, string> {
  return new Map([...markdown.matchAll(BLOCK)].map((block) => [block[1]!, block[2]!]));
}
