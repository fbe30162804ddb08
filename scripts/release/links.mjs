/**
 * The links of a package's pages. A page of the repository may link to files that its package does not
 * contain, such as CONTRIBUTING.md. packages.mjs and checks.mjs use this file.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Matches a block of code, code in a line, or a link to a path: `!`, its text, and the path. */
const CODE_OR_LINK =
  /^(`{3,}|~{3,})[\s\S]*?^\1|(`+)[^`][\s\S]*?\2(?!`)|(!?)\[((?:[^[\]`]|`[^`]*`)*)\]\((?![a-z]+:|#)([^)\s]+)\)/gm;

/** Returns the paths to which a page links, without the names of headings. */
export const relativeLinks = (page) =>
  [...page.matchAll(CODE_OR_LINK)]
    .map(([, , , , , path]) => path?.replace(/#.*/, ''))
    .filter((path) => path !== undefined);

/**
 * Returns the page at the root of `folder` with each link to a file that the folder lacks replaced by a link
 * to that file in the repository, at the tag of the version. When the repository is not known, only the text
 * of such a link stays.
 */
export const linksThatWork = (page, { folder, repository, version }) =>
  page.replace(CODE_OR_LINK, (whole, _block, _code, image, text, path) => {
    if (path === undefined || existsSync(join(folder, path.replace(/#.*/, '')))) return whole;
    if (repository === undefined) return text;
    return `${image}[${text}](${repository}/${image === '' ? 'blob' : 'raw'}/v${version}/${path})`;
  });
