/**
 * `rdma-rpc scaffold`: adds the missing methods to the user's own class of handlers. It uses a syntax tree in
 * spite of the cost, because the user's code must stay unchanged. The generator's own files are composed as
 * plain text. It is used only at build time.
 */
import { type ClassDeclaration, IndentationText, Node, Project, QuoteKind, type SourceFile } from 'ts-morph';
import { docText } from '../emit/comment.ts';
import { outputPath } from '../emit/scope.ts';
import type { File, Message, Method, Service } from '../model/model.ts';
import { quoted } from '../model/quoted.ts';

/** The changes to one class. */
export interface Scaffolded {
  /** The service's full name, such as `shop.v1.Shop`. */
  readonly service: string;
  /** Name of the class. It is a new class when no class in the file implemented the service's handlers. */
  readonly className: string;
  readonly added: readonly string[];
  /**
   * Methods of the class that the service does not have. They may be helpers, or may remain from a removed
   * method.
   */
  readonly others: readonly string[];
}

/** Converts the `outputPath` of a .proto to an import specifier, relative to the file. */
export type ModuleOf = (output: string) => string;

class Scaffold {
  readonly #source: SourceFile;
  readonly #moduleOf: ModuleOf;

  constructor(source: SourceFile, moduleOf: ModuleOf) {
    this.#source = source;
    this.#moduleOf = moduleOf;
  }

  add(service: Service, file: File): Scaffolded {
    const found = this.#source.getClasses().find((each) => implementsAny(each, service.handlers));
    const target = found ?? this.#newClass(service, file);
    const has = (name: string) => target.getInstanceMember(name) !== undefined;
    const missing = service.methods.filter(({ key }) => !has(key));
    for (const method of missing) this.#addMethod(target, method);
    const known = new Set(service.methods.map(({ key }) => key));
    return {
      service: service.fullName,
      className: target.getNameOrThrow(),
      added: missing.map(({ key }) => key),
      others: target
        .getInstanceMethods()
        .map((method) => method.getName())
        .filter((name) => !known.has(name)),
    };
  }

  #newClass(service: Service, file: File): ClassDeclaration {
    const handlers = this.#import(this.#moduleOf(outputPath(file.path)), service.handlers);
    return this.#source.addClass({
      name: `${service.name}Service`,
      isExported: true,
      implements: [handlers],
    });
  }

  #addMethod(target: ClassDeclaration, method: Method): void {
    const { requestStream, responseStream, options } = method;
    const request = this.#message(method.request, method.request.identifier);
    const response = options.oneWay ? 'void' : this.#message(method.response, method.response.init);
    const error = this.#import('rdma-rpc', 'RpcError', 'value');
    const status = this.#import('rdma-rpc', 'Status', 'value');
    const context = this.#import('rdma-rpc', 'HandlerContext');
    const doc = docText(method);
    target.addMethod({
      name: method.key,
      isAsync: true,
      isGenerator: responseStream,
      ...(doc !== undefined && { docs: [doc.includes('\n') ? `\n${doc}` : doc] }),
      parameters: [
        {
          name: requestStream ? '_requests' : '_request',
          type: requestStream ? `AsyncIterable<${request}>` : request,
        },
        { name: '_context', type: context },
      ],
      returnType: responseStream ? `AsyncGenerator<${response}>` : `Promise<${response}>`,
      statements: [
        `throw new ${error}(${status}.UNIMPLEMENTED, ${quoted(`${method.path} is not written yet`)});`,
      ],
    });
  }

  #message({ file }: Message, name: string): string {
    return this.#import(file.bundled ? 'rdma-rpc/codec' : this.#moduleOf(outputPath(file.path)), name);
  }

  /**
   * Imports `name` unless it is already imported. Returns the local name of the import, which differs when
   * `name` is taken.
   */
  #import(module: string, name: string, kind: 'type' | 'value' = 'type'): string {
    const imports = this.#source.getImportDeclarations();
    const own = imports.filter((each) => each.getModuleSpecifierValue() === module);
    for (const each of own.flatMap((declaration) => declaration.getNamedImports())) {
      if (each.getName() === name) return each.getAliasNode()?.getText() ?? name;
    }
    const taken = new Set([
      ...imports.flatMap((each) =>
        each.getNamedImports().map((named) => named.getAliasNode()?.getText() ?? named.getName()),
      ),
      ...this.#source
        .getStatements()
        .flatMap((each) => (Node.isNamed(each) || Node.isNameable(each) ? [each.getName()] : [])),
    ]);
    let local = name;
    for (let i = 2; taken.has(local); ++i) local = `${name}${i}`;
    const target =
      own.find((each) => !each.isTypeOnly() && each.getNamespaceImport() === undefined) ??
      (kind === 'type' ? own.find((each) => each.isTypeOnly()) : undefined);
    const named = { name, ...(local !== name && { alias: local }) };
    if (target !== undefined) {
      target.addNamedImport({ ...named, isTypeOnly: kind === 'type' && !target.isTypeOnly() });
    } else {
      const isTypeOnly = kind === 'type';
      this.#source.addImportDeclaration({ moduleSpecifier: module, isTypeOnly, namedImports: [named] });
    }
    return local;
  }
}

function implementsAny(target: ClassDeclaration, name: string): boolean {
  return target.getImplements().some((each) => each.getExpression().getText().split('.').at(-1) === name);
}

/**
 * Returns `text` (of a file, '' for a new file) with a class for each service. Existing methods stay
 * unchanged; missing methods are added at the end and answer UNIMPLEMENTED.
 */
export function scaffoldHandlers(
  text: string,
  services: readonly { readonly service: Service; readonly file: File }[],
  moduleOf: ModuleOf,
): { text: string; classes: Scaffolded[] } {
  const project = new Project({
    useInMemoryFileSystem: true,
    skipLoadingLibFiles: true,
    manipulationSettings: { indentationText: IndentationText.TwoSpaces, quoteKind: QuoteKind.Single },
  });
  const source = project.createSourceFile('handlers.ts', text);
  const scaffold = new Scaffold(source, moduleOf);
  const classes = services.map(({ service, file }) => scaffold.add(service, file));
  return { text: source.getFullText(), classes };
}
