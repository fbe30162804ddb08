/**
 * The parser, which turns one .proto into a file descriptor as protoc would make it. However, names are as
 * written (codegen/link resolves them), and options are statements. It reports every error that it finds and
 * continues behind the error. The loader calls it.
 */

import { posix } from 'node:path';
import { FileDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { editions } from '../descriptor/types.ts';
import type { Reporter } from '../diagnostic.ts';
import { tokenize } from './lexer.ts';
import { MessageParser } from './parse-message.ts';
import { parseOptionStatement } from './parse-option.ts';
import { parseService } from './parse-service.ts';
import { ParseState } from './parse-state.ts';
import type { OptionStatement, ParsedFile } from './parsed.ts';
import { TokenStream } from './token-stream.ts';

class FileParser {
  readonly #state: ParseState;
  readonly #file: FileDescriptorProto;
  readonly #imports: ParsedFile['imports'][number][] = [];
  readonly #options: OptionStatement[] = [];
  readonly #messages: MessageParser;

  constructor(path: string, state: ParseState) {
    this.#state = state;
    this.#file = FileDescriptorProto.create({ name: path });
    this.#messages = new MessageParser(state);
  }

  run(): ParsedFile {
    const state = this.#state;
    const file = this.#file;
    const imports = this.#imports;
    const { stream } = state;
    this.#syntaxStatement();
    while (stream.peek().kind !== 'end') {
      state.statement(() => this.#statement());
      // This is an extra brace. Recovery has stopped in front of it.
      if (stream.is('}')) {
        stream.reporter.report(stream.next(), 'this } closes nothing');
      }
    }
    if (state.syntax === 'proto3') file.syntax = 'proto3';
    else if (state.isEdition) {
      file.syntax = 'editions';
      file.edition = editions[state.syntax];
    }
    state.options('FileOptions', file, file.package ?? '', this.#options);
    return {
      descriptor: file,
      locations: state.locations,
      pending: state.pending,
      defaults: state.defaults,
      imports,
      broken: stream.reporter.failed,
    };
  }

  #syntaxStatement(): void {
    const { stream } = this.#state;
    this.#state.statement(() => {
      const keyword = stream.peek().text;
      if (keyword !== 'syntax' && keyword !== 'edition') {
        const message = 'no syntax = "proto3" or edition at the start: taken as proto2';
        if (stream.peek().kind !== 'end') stream.reporter.report(stream.peek(), message, 'warning');
        return;
      }
      stream.next();
      stream.expect('=');
      const { token, bytes } = stream.string(keyword === 'syntax' ? '"proto2" or "proto3"' : 'an edition');
      const value = bytes.toString();
      const known = keyword === 'syntax' ? ['proto2', 'proto3'] : ['2023', '2024', '2026'];
      if (!known.includes(value))
        stream.reporter.report(token, `${keyword} "${value}" is not supported, only ${listed(known)}`);
      // The syntax is kept even when it is not supported, so that the rest of the file is not checked by the
      // rules of another syntax.
      this.#state.syntax = known.includes(value) || keyword === 'edition' ? value : 'proto3';
      stream.expect(';');
    });
  }

  #statement(): void {
    const state = this.#state;
    const file = this.#file;
    const { stream } = state;
    const { package: scope = '' } = file;
    switch (stream.peek().text) {
      case 'package':
        this.#packageStatement();
        return;
      case 'import':
        this.#importStatement();
        return;
      case 'option':
        // This is the first option of the file.
        if (this.#options.length === 0) state.place('8', stream.peek(1));
        this.#options.push(parseOptionStatement(stream));
        return;
      case 'service':
        parseService(state, file.service, '6', scope);
        return;
      case 'syntax':
      case 'edition':
        stream.fail(stream.peek(), `${stream.peek().text} must be the first statement of the file`);
        return;
      default:
        if (
          this.#messages.declaration({
            scope,
            messages: file.messageType,
            messagePath: '4',
            enums: file.enumType,
            enumPath: '5',
            extensions: file.extension,
            extensionPath: '7',
          })
        )
          return;
        stream.expected('message, enum, service, extend, import, option or package');
    }
  }

  #packageStatement(): void {
    const { stream } = this.#state;
    const keyword = stream.next();
    const name = stream.dotted("the package's name", false);
    stream.expect(';');
    if (this.#file.package !== undefined) stream.fail(keyword, 'a file has only one package');
    this.#file.package = name.text;
    this.#state.place('2', name);
  }

  #importStatement(): void {
    const { stream } = this.#state;
    stream.next();
    let kind: ParsedFile['imports'][number]['kind'] = 'plain';
    for (const each of ['public', 'weak', 'option'] as const) if (stream.is(each)) kind = each;
    if (kind !== 'plain') {
      const token = stream.next();
      if (kind === 'option' && !this.#state.since2024) stream.fail(token, 'import option needs edition 2024');
      if (kind === 'weak' && this.#state.since2024)
        stream.reporter.report(
          token,
          'edition 2024 has no weak imports: write import option, or leave the word out',
        );
    }
    const { token, bytes } = stream.string('a path in quotes');
    stream.expect(';');
    const path = bytes.toString();
    if (path.includes('\\')) stream.fail(token, 'the path of an import has / between its parts, and no \\');
    const plain = posix.normalize(path).replace(/^\//, '');
    if (path !== plain || path === '.' || path.startsWith('../'))
      stream.fail(
        token,
        `the path of an import begins at an include directory and has no part that is empty, "." or ".."${/^\.\.?(?:\/|$)/.test(plain) ? '' : `: write "${plain}"`}`,
      );
    if (this.#imports.some((other) => other.path === path)) stream.fail(token, `${path} is imported twice`);
    this.#imports.push({ path, token, kind });
    const file = this.#file;
    if (kind === 'public') file.publicDependency.push(file.dependency.length);
    if (kind === 'weak') file.weakDependency.push(file.dependency.length);
    (kind === 'option' ? file.optionDependency : file.dependency).push(path);
  }
}

const listed = (words: readonly string[]): string =>
  `${words
    .slice(0, -1)
    .map((word) => `"${word}"`)
    .join(', ')} and "${words.at(-1)}"`;

/** Parses a .proto file, and reports its errors. `path` is the import path of the file. */
export function parseFile(path: string, text: string, reporter: Reporter): ParsedFile {
  return new FileParser(path, new ParseState(new TokenStream(tokenize(text), reporter))).run();
}
