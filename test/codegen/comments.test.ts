/**
 * Tests that the comments and `deprecated` options of every element that may have them appear in the output
 * for both targets, and in `rdma-rpc describe`.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { declarationText } from '../../cli/server/schema/declaration.ts';
import { fileRegistry } from '../../cli/server/schema/file-schema.ts';
import { generate } from '../../codegen/index.ts';
import { workspace } from './workspace.ts';

const source = `syntax = "proto2";
// IN FRONT OF M
message M { // BEHIND M
  // IN FRONT OF HOW
  oneof how { // BEHIND HOW
    // IN FRONT OF CARD
    string card = 1 [deprecated = true]; // BEHIND CARD
    bytes voucher = 2; // BEHIND VOUCHER
    M nested = 3 [deprecated = true];
    int32 plain = 4;
  }
  /* IN FRONT OF A */
  optional int32 a = 5; // BEHIND A
  extensions 100;
}
// IN FRONT OF E
enum E { // BEHIND E
  // IN FRONT OF ZERO
  ZERO = 0 [deprecated = true]; // BEHIND ZERO
}
// IN FRONT OF S
service S { // BEHIND S
  // IN FRONT OF GET
  rpc Get(M) returns (M); // BEHIND GET
}
extend M {
  // IN FRONT OF X
  optional int32 x = 100; // BEHIND X
}
`;
const elements = ['M', 'HOW', 'CARD', 'A', 'E', 'ZERO', 'S', 'GET', 'X'];

describe.each(['ts', 'js'] as const)('target %s', (target) => {
  const output = async (): Promise<string> => {
    const directory = workspace({ 'a.proto': source });
    const { outputs } = await generate({ files: [join(directory, 'a.proto')], target });
    return outputs.at(-1)?.text ?? '';
  };

  test('an element has the comment before it, an empty line, and the comment after it', async () => {
    const text = await output();
    for (const name of elements)
      expect(text).toMatch(new RegExp(`\\* IN FRONT OF ${name}\\n *\\*\\n *\\* BEHIND ${name}\\n`));
    expect(text).toContain('/** BEHIND VOUCHER */');
  });

  test('members of a oneof have their comment at the value, where editors show it', async () => {
    const parsed = ts.createSourceFile('a.d.ts', await output(), ts.ScriptTarget.Latest, true);
    const found = new Map<string, [text: string, deprecated: boolean]>();
    const visit = (node: ts.Node): void => {
      if (ts.isTypeLiteralNode(node) && ts.isUnionTypeNode(node.parent)) {
        const [name, value] = node.members.map((member) => member as ts.PropertySignature);
        const tags = ts.getJSDocTags(value!).map(({ tagName }) => tagName.text);
        const docs = ts
          .getJSDocCommentsAndTags(value!)
          .map((each) => ts.getTextOfJSDocComment(each.comment) ?? '');
        found.set(name!.type!.getText(), [docs.join('').replace(/\s+/g, ' '), tags.includes('deprecated')]);
      }
      ts.forEachChild(node, visit);
    };
    visit(parsed);
    expect(found).toEqual(
      new Map([
        ["'card'", ['IN FRONT OF CARD BEHIND CARD', true]],
        ["'voucher'", ['BEHIND VOUCHER', false]],
        ["'nested'", ['', true]],
      ]),
    );
  });
});

test('describe prints both comments', () => {
  const directory = workspace({ 'a.proto': source });
  const registry = fileRegistry({ proto: [join(directory, 'a.proto')], include: [directory], protoset: [] });
  const text = ['M', 'E', 'S']
    .map((name) => declarationText(registry.get(name)! as never, registry))
    .join('\n');
  for (const name of elements.filter((each) => each !== 'X'))
    expect(text).toMatch(new RegExp(`// IN FRONT OF ${name}\\n *//\\n *// BEHIND ${name}\\n`));
});
