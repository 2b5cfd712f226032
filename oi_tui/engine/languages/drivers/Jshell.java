// Runs blocks of Java for oi-tui:  java Jshell.java <folder>
//
// In <folder> lie two FIFOs. From `commands` come lines "run <file>" and "interrupt"; to `events` go "ready <version>",
// "line <n>" and "end <status>". What the code prints goes to the terminal and nowhere else. The code is evaluated by
// JShell in this very process, so that it has the terminal; statements, expressions, imports, methods and classes of
// all blocks share one state. A block that declares a class with `main` and does not use it has `main` called.

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.ExpressionSnippet;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.TypeDeclSnippet;
import jdk.jshell.UnresolvedReferenceException;
import jdk.jshell.VarSnippet;

public class Jshell {
    private static final List<String> IMPORTS = List.of(
        "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.time.*", "java.util.*",
        "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*");
    private static final Pattern PACKAGE = Pattern.compile("\\A\\s*package\\s+[\\w.]+\\s*;");
    private static final Pattern BLANK = Pattern.compile("\\A(?:\\s+|//[^\\n]*|/\\*(?s:.*?)\\*/)*");
    private static final Pattern MAIN = Pattern.compile("\\bpublic\\s+static\\s+(?:final\\s+)?void\\s+main\\s*\\(");

    private final Writer events;
    private final JShell shell = JShell.builder().executionEngine("local").build();
    private final SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
    private final Map<String, Place> places = new HashMap<>(); // of snippets, by id
    private volatile boolean interrupted;

    private record Place(String block, int line) {
        @Override
        public String toString() {
            return block + ":" + line;
        }
    }

    private Jshell(Path folder) throws IOException {
        events = new FileWriter(folder.resolve("events").toFile());
        for (String name : IMPORTS) shell.eval("import " + name + ";");
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        Jshell driver = new Jshell(folder);
        BlockingQueue<Path> blocks = new LinkedBlockingQueue<>();
        Thread listener = new Thread(() -> driver.listen(folder, blocks), "oi-tui");
        listener.setDaemon(true);
        listener.start();
        driver.shell.eval("0"); // the first evaluation takes long
        driver.tell("ready " + System.getProperty("java.version"));
        while (true) {
            Path block = blocks.take();
            driver.interrupted = false;
            int status = driver.run(block);
            System.out.flush();
            driver.tell("end " + (driver.interrupted ? 130 : status));
        }
    }

    private void listen(Path folder, BlockingQueue<Path> blocks) {
        try (BufferedReader commands = new BufferedReader(new FileReader(folder.resolve("commands").toFile()))) {
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                if (line.startsWith("run ")) {
                    blocks.add(Path.of(line.substring(4)));
                } else if (line.equals("interrupt")) {
                    interrupted = true;
                    shell.stop();
                }
            }
        } catch (IOException error) {
            System.exit(70);
        }
    }

    private synchronized void tell(String line) throws IOException {
        events.write(line + "\n");
        events.flush();
    }

    private int run(Path block) throws IOException {
        String name = block.getFileName().toString();
        String code = Files.readString(block);
        Matcher header = PACKAGE.matcher(code);
        String rest = header.find() ? code.substring(header.end()) : code;
        String mainClass = null;
        while (!rest.isBlank() && !interrupted) {
            int line = lineOf(code, code.length() - rest.length() + indent(rest));
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            String source = info.completeness().isComplete() ? info.source() : rest;
            rest = info.completeness().isComplete() ? info.remaining() : "";
            source = source.substring(indent(source)); // JShell counts lines right only without blanks before
            if (source.isBlank()) continue;
            if (analysis.sourceToSnippets(source).isEmpty()) continue; // nothing but comments
            tell("line " + line);
            List<SnippetEvent> outcome = shell.eval(source);
            for (SnippetEvent event : outcome) {
                if (event.causeSnippet() != null) continue;
                places.put(event.snippet().id(), new Place(name, line));
                if (!show(event, name, line, source)) return 1;
                if (event.snippet() instanceof TypeDeclSnippet type && MAIN.matcher(source).find()) mainClass = type.name();
                else if (event.snippet().kind() != Snippet.Kind.IMPORT && !(event.snippet() instanceof TypeDeclSnippet)) {
                    if (mainClass != null && source.contains(mainClass)) mainClass = null; // it is used by the block itself
                }
            }
        }
        if (mainClass == null || interrupted) return 0;
        for (SnippetEvent event : shell.eval(mainClass + ".main(new String[0]);")) {
            if (!show(event, name, 1, "")) return 1;
        }
        return 0;
    }

    // False: it went wrong, and was reported.
    private boolean show(SnippetEvent event, String name, int line, String source) {
        if (interrupted) return false;
        if (event.status() == Snippet.Status.REJECTED) {
            shell.diagnostics(event.snippet()).forEach(diagnosis -> report(diagnosis, name, line, source));
            return false;
        }
        if (event.status().isDefined() && event.status() != Snippet.Status.VALID) {
            String missing = String.join(", ", shell.unresolvedDependencies((jdk.jshell.DeclarationSnippet) event.snippet()).toList());
            System.err.println(name + ":" + line + ": declared, but cannot be used before this is: " + missing);
        }
        if (event.exception() != null) {
            report(event.exception(), name, line);
            return false;
        }
        boolean isValue = event.snippet() instanceof ExpressionSnippet
            || event.snippet() instanceof VarSnippet && event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
        boolean isStatement = source.stripTrailing().endsWith(";"); // its value is a by-product
        if (isValue && !isStatement && event.value() != null && !event.value().isEmpty()) System.out.println(event.value());
        return true;
    }

    private void report(Diag diagnosis, String name, int line, String source) {
        int at = (int) Math.max(0, Math.min(diagnosis.getPosition(), source.length()));
        int from = source.lastIndexOf('\n', Math.max(0, at - 1)) + 1;
        int to = source.indexOf('\n', at);
        String kind = diagnosis.isError() ? "error" : "warning";
        String message = diagnosis.getMessage(Locale.getDefault());
        System.err.println(name + ":" + (line + lineOf(source, at) - 1) + ": " + kind + ": " + message);
        System.err.println(source.substring(from, to < 0 ? source.length() : to));
        System.err.println(" ".repeat(Math.max(0, at - from)) + "^");
    }

    private void report(JShellException problem, String name, int line) {
        if (problem instanceof EvalException thrown) {
            StringBuilder text = new StringBuilder("Exception in " + name + ":" + line + " " + thrown.getExceptionClassName());
            if (thrown.getMessage() != null) text.append(": ").append(thrown.getMessage());
            for (StackTraceElement frame : thrown.getStackTrace()) {
                if (!describe(frame).isEmpty()) text.append("\n    at ").append(describe(frame));
            }
            Throwable cause = thrown.getCause();
            if (cause != null && cause.getMessage() != null) {
                text.append("\nCaused by: ").append(cause.getMessage());
            }
            System.err.println(text);
        } else if (problem instanceof UnresolvedReferenceException missing) {
            String names = String.join(", ", shell.unresolvedDependencies(missing.getSnippet()).toList());
            System.err.println("Error in " + name + ":" + line + ": not declared yet: " + names);
        } else {
            System.err.println(problem);
        }
    }

    private String describe(StackTraceElement frame) {
        String file = frame.getFileName();
        Place place = file != null && file.startsWith("#") ? places.get(file.substring(1)) : null;
        if (place == null) return file != null && file.startsWith("#") ? "" : frame.toString(); // the call of `main`
        String type = frame.getClassName().isEmpty() ? "" : frame.getClassName() + ".";
        String method = frame.getMethodName().isEmpty() ? "" : type + frame.getMethodName() + " ";
        return method + "(" + new Place(place.block(), place.line() + Math.max(0, frame.getLineNumber() - 1)) + ")";
    }

    // How many characters of blanks and comments come first.
    private static int indent(String text) {
        Matcher blank = BLANK.matcher(text);
        return blank.find() ? blank.end() : 0;
    }

    private static int lineOf(String text, int offset) {
        return 1 + (int) text.substring(0, Math.min(offset, text.length())).chars().filter(c -> c == '\n').count();
    }
}
