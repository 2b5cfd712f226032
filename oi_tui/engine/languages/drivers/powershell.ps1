# Runs blocks of PowerShell for oi-tui:  pwsh -File powershell.ps1 <folder>
#
# In <folder> lie two FIFOs. From `commands` come lines "run <file>" and "interrupt"; to `events` go "ready <version>" and
# "end <status>". What the code prints goes to the terminal and nowhere else. All blocks share one runspace, which is
# not this script's, so that a block can be stopped without ending the driver.
param([string] $Folder)

$ErrorActionPreference = 'Stop'
$stream = [IO.FileStream]::new((Join-Path $Folder 'events'), [IO.FileMode]::Open, [IO.FileAccess]::Write)
$events = [IO.StreamWriter]::new($stream)
$events.AutoFlush = $true
$events.NewLine = "`n"
$commands = [IO.StreamReader]::new([IO.FileStream]::new(
    (Join-Path $Folder 'commands'), [IO.FileMode]::Open, [IO.FileAccess]::Read))

$runspace = [runspacefactory]::CreateRunspace($Host)
$runspace.Open()
$runspace.SessionStateProxy.Path.SetLocation($PWD.Path) | Out-Null

function Start-Block([string] $File) {
    $shell = [powershell]::Create()
    $shell.Runspace = $runspace
    # Without a local scope: variables and functions stay.
    $null = $shell.AddScript([IO.File]::ReadAllText($File), $false)
    $shell.Commands.Commands[0].MergeMyResults('Error', 'Output')
    $null = $shell.AddCommand('Out-Default')
    $runspace.SessionStateProxy.SetVariable('LASTEXITCODE', 0)
    @{ Shell = $shell; Handle = $shell.BeginInvoke(); Stopped = $false }
}

function Complete-Block($Block) {
    $status = 0
    try {
        $null = $Block.Shell.EndInvoke($Block.Handle)
        $last = $runspace.SessionStateProxy.GetVariable('LASTEXITCODE')
        if ($last) { $status = [int] $last } elseif ($Block.Shell.HadErrors) { $status = 1 }
    } catch {
        $status = if ($Block.Stopped) { 130 } else { 1 }
        if (-not $Block.Stopped) {
            $problem = $_.Exception
            if ($problem.InnerException) { $problem = $problem.InnerException }
            $record = $problem.ErrorRecord
            $where = if ($record -and $record.InvocationInfo) { $record.InvocationInfo.PositionMessage } else { '' }
            [Console]::Error.WriteLine(("{0}`n{1}" -f $problem.Message, $where).TrimEnd())
        }
    }
    $Block.Shell.Dispose()
    $events.WriteLine("end $status")
}

$events.WriteLine("ready $($PSVersionTable.PSVersion)")
$block = $null
$reading = $commands.ReadLineAsync()
while ($true) {
    if ($block -and $block.Handle.IsCompleted) {
        Complete-Block $block
        $block = $null
    }
    if ($reading.Wait($(if ($block) { 5 } else { -1 }))) {
        $line = $reading.Result
        if ($null -eq $line) { exit 0 }
        if ($line.StartsWith('run ')) {
            $block = Start-Block $line.Substring(4)
        } elseif ($line -eq 'interrupt' -and $block) {
            $block.Stopped = $true
            $null = $block.Shell.BeginStop($null, $null)
        }
        $reading = $commands.ReadLineAsync()
    }
}
