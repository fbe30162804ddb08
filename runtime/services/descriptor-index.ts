/**
 * The index for reflection. It finds files by name and by the symbols that they declare, and extensions by
 * the message that they extend. It is built from the files of services.
 */
import type { FileDescriptor } from '../codec/file-descriptor.ts';
import { type EnumNames, type FieldName, FileNames, type MessageNames } from './gen/symbols.rdma.ts';

export class DescriptorIndex {
  readonly #files = new Map<string, FileDescriptor>();
  readonly #symbols = new Map<string, FileDescriptor>();
  /** The files that declare extensions, by extended message, then by number. */
  readonly #extensions = new Map<string, Map<number, FileDescriptor>>();

  constructor(files: Iterable<FileDescriptor>) {
    // An explicit list is used instead of recursion, because a chain of imports may be longer than the stack
    // allows.
    for (const open = [...files]; open.length > 0; ) {
      const file = open.pop();
      if (file === undefined || this.#files.has(file.name)) continue;
      this.#add(file);
      for (const imported of file.dependencies) open.push(imported);
    }
  }

  file(name: string): FileDescriptor | undefined {
    return this.#files.get(name);
  }

  /**
   * Returns the file that declares a service, method, message, field, oneof, enum, enum value or extension,
   * by full name.
   */
  declaring(symbol: string): FileDescriptor | undefined {
    return this.#symbols.get(symbol.startsWith('.') ? symbol.slice(1) : symbol);
  }

  extension(message: string, number: number): FileDescriptor | undefined {
    return this.#extensions.get(message)?.get(number);
  }

  /** Returns the extension numbers in use for a message, or undefined when the message is unknown. */
  extensionNumbers(message: string): number[] | undefined {
    if (!this.#symbols.has(message)) return undefined;
    return [...(this.#extensions.get(message)?.keys() ?? [])].sort((a, b) => a - b);
  }

  #add(file: FileDescriptor): void {
    this.#files.set(file.name, file);
    const proto = FileNames.decode(file.bytes);
    const scope = proto.package === '' ? '' : `${proto.package}.`;
    for (const message of proto.messageType) this.#addMessage(scope, message, file);
    for (const each of proto.enumType) this.#addEnum(scope, each, file);
    for (const each of proto.extension) this.#addExtension(scope, each, file);
    for (const service of proto.service) {
      const path = `${scope}${service.name}`;
      this.#symbols.set(path, file);
      for (const method of service.method) this.#symbols.set(`${path}.${method.name}`, file);
    }
  }

  #addMessage(scope: string, message: MessageNames, file: FileDescriptor): void {
    const path = `${scope}${message.name}`;
    this.#symbols.set(path, file);
    for (const field of message.field) this.#symbols.set(`${path}.${field.name}`, file);
    for (const oneof of message.oneofDecl) this.#symbols.set(`${path}.${oneof.name}`, file);
    for (const nested of message.nestedType) this.#addMessage(`${path}.`, nested, file);
    for (const each of message.enumType) this.#addEnum(`${path}.`, each, file);
    for (const each of message.extension) this.#addExtension(`${path}.`, each, file);
  }

  /** Adds an enum and its values. The values are siblings of the enum, as in C++. */
  #addEnum(scope: string, declared: EnumNames, file: FileDescriptor): void {
    this.#symbols.set(`${scope}${declared.name}`, file);
    for (const value of declared.value) this.#symbols.set(`${scope}${value.name}`, file);
  }

  #addExtension(scope: string, field: FieldName, file: FileDescriptor): void {
    this.#symbols.set(`${scope}${field.name}`, file);
    const message = field.extendee.replace(/^\./, '');
    let numbers = this.#extensions.get(message);
    if (numbers === undefined) {
      numbers = new Map();
      this.#extensions.set(message, numbers);
    }
    numbers.set(field.number, file);
  }
}
