# Runs blocks of Ruby for oi-tui:  ruby ruby.rb <folder>
#
# In <folder> lie two FIFOs. From `commands` come lines "run <file>"; to `events` go "ready <version>", "line <n>" and
# "end <status>". What the code prints goes to the terminal and nowhere else. All blocks share the top-level binding.
# A thread looks ten to thirty times a second at the line that the main thread is at, so the code itself is not slowed.

require "ripper"

module OITui
  STATEMENTS = %i[def defs class module sclass assign massign opassign void_stmt if unless while until for begin alias
                  undef].freeze
  BY_PRODUCTS = /\A(?:require|require_relative|load|include|extend|puts|print|p|pp|printf|attr_\w+|private|public|using|
                     protected|module_function|define_method|each\w*|times|upto|downto|step|loop|open)\z/x

  class << self
    def main(folder)
      @events = File.open(File.join(folder, "events"), "w")
      @events.sync = true
      commands = File.open(File.join(folder, "commands"), "r")
      $stdout.sync = $stderr.sync = true
      ARGV.clear
      @main = Thread.current
      @block = nil
      watch_lines
      tell "ready #{RUBY_VERSION}"
      loop do
        line = commands.gets or exit!(0)
        run(line.chomp.delete_prefix("run ")) if line.start_with?("run ")
      rescue Interrupt
        # it came when the code had just ended
      end
    end

    def tell(text)
      @events.write("#{text}\n")
    end

    def run(file)
      code = File.read(file, encoding: "UTF-8")
      name = File.basename(file)
      $0 = name # so that `if __FILE__ == $0` holds
      status = begin
        evaluate(code, name)
      ensure
        @block = nil
      end
      tell "end #{status}"
    rescue Interrupt
      tell "end 130"
    end

    def evaluate(code, name)
      watch_interrupts # again each time: the code may have set its own
      @block = name
      value = TOPLEVEL_BINDING.eval(code, name, 1)
      echo(code, value)
      0
    rescue SystemExit => e # leaving the script does not mean leaving the conversation
      e.status
    rescue Interrupt
      130
    rescue Exception => e
      report(e)
      1
    end

    # The value of the last expression, as at a prompt, unless it is the by-product of a statement.
    def echo(code, value)
      return if value.nil?

      last = Ripper.sexp(code)&.dig(1, -1)
      return if last.nil? || STATEMENTS.include?(last[0]) || BY_PRODUCTS.match?(called(last))

      puts "=> #{value.inspect}"
    rescue StandardError => e
      report(e)
    end

    # The name of the outermost method that an expression calls.
    def called(node)
      case node[0]
      when :method_add_block, :method_add_arg then called(node[1])
      when :call, :command_call then node[3].is_a?(Array) ? node[3][1] : ""
      when :command, :fcall, :vcall then node[1][1]
      else ""
      end.to_s
    end

    def report(error)
      trace = (error.backtrace || []).take_while { |line| !line.start_with?(__FILE__) }
      error.set_backtrace(trace)
      text = trace.empty? ? "#{error.message} (#{error.class})" : error.full_message(highlight: false, order: :top)
      $stderr.puts text
    rescue StandardError
      $stderr.puts "#{error.class} (its message cannot be shown)"
    end

    def watch_interrupts
      trap("INT") { @main.raise(Interrupt) if @block }
    end

    def watch_lines
      Thread.new do
        Thread.current.report_on_exception = false
        last = nil
        loop do
          sleep 0.03
          name = @block
          next last = nil unless name

          frame = @main.backtrace_locations&.find { |one| one.path == name }
          next if frame.nil? || [name, frame.lineno] == last

          last = [name, frame.lineno]
          tell "line #{frame.lineno}"
        end
      end
    end
  end
end

OITui.main(ARGV[0])
