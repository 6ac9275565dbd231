/** Data of an answer that is JSON text already, so that it is not parsed and serialized again. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
