/**
 * Emits the const with the descriptor of the file, and its text. The text is placed at the end of the file,
 * so that readers find the messages first; functions may be used above their declaration. The descriptor is a
 * text, so that loading the module costs nothing. It is not wrapped, so that it stays a single line.
 */
import { revision } from '../../runtime/codec/generated/revision.ts';
import type { File } from '../model/model.ts';
import { inComment } from './comment.ts';
import { quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { exportedConst, internal, type Statement } from './statement.ts';

export function emitDescriptor(file: File, scope: FileScope): Statement {
  const dependencies = file.dependencies.map((each) => scope.descriptor(each)).join(', ');
  return exportedConst(
    {
      doc: `/** Descriptor of ${inComment(file.path)}, for reflection. */\n`,
      name: file.descriptor,
      type: '$.FileDescriptor',
      value: `/* @__PURE__ */ $.fileDescriptor(() => [${dependencies}], $descriptor, ${revision})`,
    },
    scope,
  );
}

export function emitDescriptorText(file: File, scope: FileScope): Statement {
  const base64 = Buffer.from(file.bytes).toString('base64');
  return internal(`${scope.function('$descriptor', [], 'string')}\n  return ${quote(base64)};\n}`);
}
