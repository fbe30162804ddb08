/**
 * Determines where each feature of an edition may be set. descriptor.proto declares this in options that the
 * bundled copy omits. interpret.ts calls it.
 */

const everywhere = undefined;
const onFields = ['FieldOptions', 'FileOptions'];

const targets: Readonly<Record<string, readonly string[] | undefined>> = {
  field_presence: onFields,
  repeated_field_encoding: onFields,
  utf8_validation: onFields,
  message_encoding: onFields,
  enum_type: ['EnumOptions', 'FileOptions'],
  json_format: ['MessageOptions', 'EnumOptions', 'FileOptions'],
  default_symbol_visibility: ['FileOptions'],
  enforce_naming_style: everywhere,
};

const nouns: Readonly<Record<string, string>> = {
  FileOptions: 'files',
  FieldOptions: 'fields',
  EnumOptions: 'enums',
  MessageOptions: 'messages',
};

/**
 * Returns undefined when `feature` may be set in options of this type (`MessageOptions`). Otherwise returns
 * the places where the option may be set.
 */
export function misplacedFeature(feature: string, type: string): string | undefined {
  const allowed = targets[feature];
  return allowed === undefined || allowed.includes(type)
    ? undefined
    : allowed.map((each) => nouns[each]).join(', ');
}
