// Server-sent events, read from a stream of bytes. EventSource cannot send a token, so the page reads them itself.

export interface ServerEvent {
  kind: string;
  data: string;
  id: string | null;
}

export interface Parsed {
  events: ServerEvent[];
  retryMs: number | null;
}

/** Takes text in pieces of any size and gives the events that are whole. */
export class EventParser {
  private rest = "";
  private kind = "";
  private data: string[] = [];
  private id: string | null = null;

  push(text: string): Parsed {
    const parsed: Parsed = { events: [], retryMs: null };
    // A carriage return at the end may be half of a line's end: it waits for what follows.
    let all = this.rest + text;
    let held = "";
    if (all.endsWith("\r")) {
      held = "\r";
      all = all.slice(0, -1);
    }
    const lines = all.split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? "") + held;
    for (const line of lines) this.line(line, parsed);
    return parsed;
  }

  private line(line: string, parsed: Parsed): void {
    if (line === "") {
      if (this.data.length > 0) parsed.events.push({ kind: this.kind || "message", data: this.data.join("\n"), id: this.id });
      this.kind = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.kind = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
    else if (field === "retry" && /^\d+$/.test(value)) parsed.retryMs = Number(value);
  }
}
